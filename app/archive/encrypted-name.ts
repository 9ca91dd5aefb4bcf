/** The suffix of an encrypted file's name. */
export const ENCRYPTED = '.age';
