export const credits = {
  understood: (amount: string) => `= ${amount} credits`,
  understoodOf: (amount: string, share: string) => `= ${amount} credits, ${share} of the package`,
  little: "less than 1 %",
  ambiguous: (text: string, small: string, large: string) =>
    `${text} can mean ${small} or ${large}. Please type ${small} or ${large}.`,
  unreadable: (max: string) => `Please type a number such as 2,000,000 or 2.5M, at most ${max}.`,
};
