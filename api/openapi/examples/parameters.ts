export const parameterExamples: Readonly<Record<string, unknown>> = {};
