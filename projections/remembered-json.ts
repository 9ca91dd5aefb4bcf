/** Parses JSON that a process has remembered for others; null for none, and if another release wrote or truncated it. */
export function parseRemembered<T extends object>(
  text: string | null,
  isValid: (value: { readonly [K in keyof T]?: unknown }) => boolean,
): T | null {
  try {
    const value = JSON.parse(text ?? 'null') as T | null;
    return typeof value === 'object' && value !== null && isValid(value) ? value : null;
  } catch {
    return null;
  }
}
