/** Node's code of a warning about TLS to an IP address. */
const CODE = 'DEP0123';

let isHidden = false;

/**
 * Suppresses Node's warning that an IP address is not a server name for TLS, in the calling thread. The client passes
 * every server's host as its name, even if a cluster announces it by address. Users cannot change that, and the
 * certificate is checked against the address anyway.
 */
export function hideServerNameWarning(): void {
  if (isHidden) return;
  isHidden = true;
  const emit = process.emitWarning.bind(process) as (...warning: readonly unknown[]) => void;
  process.emitWarning = (...warning: readonly unknown[]): void => {
    if (!warning.includes(CODE)) emit(...warning);
  };
}
