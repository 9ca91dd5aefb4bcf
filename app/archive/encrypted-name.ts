/** The end of an encrypted file's name. */
export const ENCRYPTED = '.age';
