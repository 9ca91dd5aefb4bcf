import type { Examples } from '../examples.ts';
export const serviceExamples: Readonly<Record<string, Examples>> = {};
