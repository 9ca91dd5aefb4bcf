import type { Examples } from '../examples.ts';
export const operationsExamples: Readonly<Record<string, Examples>> = {};
