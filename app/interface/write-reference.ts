import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { version } from '../version.ts';
import { httpReference } from './http-reference.ts';
import { wholeInterface } from './whole-interface.ts';

// Writes the reference of all endpoints: `npm run docs:reference`.
const folder = join(import.meta.dirname, '../../docs/reference/http-endpoints');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [file, text] of httpReference(await wholeInterface(version))) {
  writeFileSync(join(folder, file), text);
}
