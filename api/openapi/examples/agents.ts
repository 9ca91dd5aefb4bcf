import type { Examples } from '../examples.ts';
export const agentExamples: Readonly<Record<string, Examples>> = {};
