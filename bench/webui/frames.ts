import type { Page } from 'playwright-core';

/** The frames that a page draws in some seconds, as cells of a table. */
export async function framesOf(page: Page, seconds: number): Promise<string> {
  const gaps = await page.evaluate<readonly number[]>(`new Promise((done) => {
    const gaps = [];
    const begun = performance.now();
    let last = begun;
    const next = (now) => {
      gaps.push(now - last);
      last = now;
      if (now - begun < ${seconds * 1000}) requestAnimationFrame(next);
      else done(gaps);
    };
    requestAnimationFrame((now) => {
      last = now;
      requestAnimationFrame(next);
    });
  })`);
  const total = gaps.reduce((sum, gap) => sum + gap, 0);
  const share = (limit: number): string =>
    `${((gaps.filter((gap) => gap > limit).length / gaps.length) * 100).toFixed(1)} %`;
  const rate = (gaps.length / total) * 1000;
  return `${rate.toFixed(1)} | ${share(20)} | ${share(33.4)} | ${Math.max(...gaps).toFixed(0)} ms`;
}
