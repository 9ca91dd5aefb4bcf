// Development and tests only: runs a thread's entry from the sources. Under `npm test`, which sets SVC_TEST_BUILT, the
// compiled entry runs instead: translating it with tsx takes ten times as long as starting the thread.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const [, , entry] = process.argv;
const sources = new URL('../../../', import.meta.url).href;
const inSources = entry.startsWith(sources) ? entry.slice(sources.length) : undefined;
const compiled = inSources && new URL(`dist/${inSources.replace(/\.ts$/, '.js')}`, sources);

if (process.env.SVC_TEST_BUILT === '1' && compiled && existsSync(fileURLToPath(compiled))) {
  await import(compiled.href);
} else {
  const { register } = await import('tsx/esm/api');
  register();
  await import(entry);
}
