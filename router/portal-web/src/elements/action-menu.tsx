/** The menu of actions on one row of a list. */
import { Menu } from "@base-ui/react/menu";
import { Fragment } from "react";
import { Icon } from "./icons.tsx";

export interface MenuAction {
  readonly label: string;
  readonly onClick: () => void;
  /** Whether the action ends something. It is set apart from the others. */
  readonly isBad?: boolean;
}

export function ActionMenu({ label, actions }: { readonly label: string; readonly actions: readonly MenuAction[] }) {
  if (actions.length === 0) return null;
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger className="button quiet icon-only" aria-label={label}>
        <Icon name="more" />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={4} className="menu-positioner">
          <Menu.Popup className="menu">
            {actions.map((action, index) => (
              <Fragment key={action.label}>
                {action.isBad && index > 0 && !actions[index - 1]!.isBad && <Menu.Separator className="menu-line" />}
                <Menu.Item className={action.isBad ? "menu-item bad" : "menu-item"} onClick={action.onClick}>
                  {action.label}
                </Menu.Item>
              </Fragment>
            ))}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
