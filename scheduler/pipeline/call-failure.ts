import { PipelineError } from '../../domain/pipeline/pipeline-error.ts';
import { SecretError } from '../../domain/secrets/secret-source.ts';
import { ToolError } from '../tools/tool.ts';

/** Why a call failed. */
export interface Failure {
  readonly message: string;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
}

/**
 * Classifies an error. Errors of the pipeline are permanent; unknown errors may be temporary. Never throws, for any
 * error.
 */
export function failureOf(error: unknown): Failure {
  const message = messageOf(error);
  try {
    if (error instanceof PipelineError) return { message, retryable: false };
    if (error instanceof ToolError) return { message, ...retryingOf(error) };
    if (error instanceof SecretError) return { message, retryable: error.retryable };
  } catch {
    // Reading the error throws, so it is unknown whether a retry would help.
  }
  return { message, retryable: true };
}

/** An extension may have changed the fields of the error. */
function retryingOf({ retryable, retryAfterMs }: ToolError): Omit<Failure, 'message'> {
  const isDuration = typeof retryAfterMs === 'number' && Number.isFinite(retryAfterMs);
  return { retryable: retryable !== false, ...(isDuration ? { retryAfterMs } : {}) };
}

/** The message or name of an error. Never throws: an extension's error may have throwing getters. */
export function messageOf(error: unknown): string {
  try {
    const said: readonly unknown[] = error instanceof Error ? [error.message, error.name] : [error];
    const text = said.find((each) => typeof each === 'string' && each !== '');
    if (typeof text === 'string') return text;
  } catch {
    // Its message cannot be read.
  }
  return 'the tool failed without an error message';
}
