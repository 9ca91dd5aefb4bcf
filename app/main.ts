#!/usr/bin/env node
import { lackOfFiles, mostOpenFiles } from './starting/open-files.ts';

// Looked at before the rest is loaded: that alone has more files open at a time than a low limit allows.
const lack = lackOfFiles(mostOpenFiles());
if (lack === null) {
  const { serve } = await import('./service-process.ts');
  await serve();
} else {
  process.stderr.write(`${lack}\n`);
  process.exitCode = 2;
}
