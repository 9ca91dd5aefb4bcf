import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { version } from '../version.ts';
import { wholeInterface } from './whole-interface.ts';

// Writes the description of the interface into a file: `tsx app/interface/write-openapi.ts <file>`.
const [, , file] = process.argv;
if (file === undefined) throw new Error('name the file that the description is written to');
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, `${JSON.stringify(await wholeInterface(version), null, 2)}\n`);
