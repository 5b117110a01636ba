/** Characters that a password has at least; the server asks the same. */
export const LEAST_PASSWORD = 12
