/**
 * Waits for work for a limited time.
 * @param limit milliseconds
 * @param message of the error that is thrown after the limit
 * @param signal stops waiting at once and throws its reason
 */
export async function withTimeLimit<T>(
  limit: number,
  message: string,
  work: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  let giveUp: () => void = () => {};
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(message)), limit);
    giveUp = () => reject(signal?.reason instanceof Error ? signal.reason : new Error(message));
    if (signal?.aborted === true) giveUp();
    signal?.addEventListener('abort', giveUp, { once: true });
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
}
