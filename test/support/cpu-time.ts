/**
 * Milliseconds of processor time that work takes in this process. A busy machine makes work last longer, but does not
 * make it more.
 */
export async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
