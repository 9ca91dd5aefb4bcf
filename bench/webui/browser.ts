import { chromium, type Browser } from 'playwright-core';
import { findProgram } from '../../test/support/required-program.ts';

/** Starts the machine's Chromium. @throws Error if it is missing */
export function launchBrowser(): Promise<Browser> {
  const executablePath = findProgram('chromium');
  if (executablePath === undefined) {
    throw new Error('chromium is missing (Debian: apt-get install chromium-headless-shell)');
  }
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
