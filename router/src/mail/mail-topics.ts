/** Topics of mails that a person can turn off. Only constants, because the contract of the portal's pages needs them. */
export const mailTopics = ["quota", "limits", "keys", "package", "sign-in"] as const;
export type MailTopic = (typeof mailTopics)[number];
