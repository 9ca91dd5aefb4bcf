/**
 * Waits for work, so long and no longer.
 * @param limit milliseconds
 * @param fault what is thrown then
 * @param signal gives up at once; its reason is thrown
 */
export async function within<T>(
  limit: number,
  fault: string,
  work: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  let giveUp: () => void = () => {};
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(fault)), limit);
    giveUp = () => reject(signal?.reason instanceof Error ? signal.reason : new Error(fault));
    if (signal?.aborted === true) giveUp();
    signal?.addEventListener('abort', giveUp, { once: true });
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
}
