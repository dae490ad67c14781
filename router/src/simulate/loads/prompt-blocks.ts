/**
 * Finds conversations in a trace that gives ids of its prompts' blocks. A block's id stands for its text and all text
 * before it, so a prompt that contains another prompt's last whole block begins with that prompt.
 */

/** The tokens of a block in Mooncake's traces. */
const blockTokens = 512;

/** Returns a function that names the conversation of each request in turn. */
export function continuedConversations() {
  /** Conversations by the last whole block of their newest prompts. */
  const byBlock = new Map<number, string>();
  let count = 0;
  return (blocks: readonly number[], inputTokens: number): string => {
    // A first block alone is a system prompt, which many conversations share.
    const known = blocks.findLast((id, index) => index > 0 && byBlock.has(id));
    const conversation = known === undefined ? `conversation-${++count}` : byBlock.get(known)!;
    const last = blocks[Math.floor(inputTokens / blockTokens) - 1];
    if (last !== undefined) byBlock.set(last, conversation);
    return conversation;
  };
}
