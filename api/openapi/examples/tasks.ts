import type { Examples } from '../examples.ts';
export const taskExamples: Readonly<Record<string, Examples>> = {};
