/** Node's code of a warning about TLS to an IP address. */
const CODE = 'DEP0123';

let isHidden = false;

/**
 * Keeps Node from warning that an IP address is no server name for TLS. The client names every server by its host, also one
 * that a cluster announces by its address. The warning says nothing that a user could change: the certificate is checked
 * against the address all the same. Holds for the calling thread.
 */
export function hideServerNameWarning(): void {
  if (isHidden) return;
  isHidden = true;
  const emit = process.emitWarning.bind(process) as (...warning: readonly unknown[]) => void;
  process.emitWarning = (...warning: readonly unknown[]): void => {
    if (!warning.includes(CODE)) emit(...warning);
  };
}
