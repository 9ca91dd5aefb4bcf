import type { Examples } from '../examples.ts';
export const eventExamples: Readonly<Record<string, Examples>> = {};
