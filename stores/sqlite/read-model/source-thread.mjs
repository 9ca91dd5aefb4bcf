// Development and tests alone: runs a thread's entry from the sources. Where all of them were just compiled, which
// `npm test` says by SVC_TEST_BUILT, the compiled entry runs: having tsx translate what it imports takes ten times as long
// as starting the thread, and nearly every test starts some.
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
