import type { Examples } from '../examples.ts';
export const runExamples: Readonly<Record<string, Examples>> = {};
