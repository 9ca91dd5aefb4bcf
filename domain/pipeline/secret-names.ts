/** The names of the secrets that appear anywhere in a pipeline, as it is written in a task's payload. */
export function secretNamesIn(pipeline: unknown): readonly string[] {
  const text = JSON.stringify(pipeline) ?? '';
  if (!text.includes('secrets')) return [];
  // Within JSON, quoted names appear as \"NAME\".
  const found = [...text.matchAll(/secrets\s*\.\s*(?:([A-Za-z_]\w*)|\\"([^"\\]+)\\")/g)];
  return [...new Set(found.map(([, plain, quoted]) => plain ?? quoted ?? ''))];
}
