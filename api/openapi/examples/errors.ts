export const errorExample = (code: string): unknown => ({ code });
