import type { Examples } from '../examples.ts';
export const historyExamples: Readonly<Record<string, Examples>> = {};
