import { MAX_RESULT_BYTES } from '../../domain/pipeline/json-size.ts';
import type { S3Settings } from '../../stores/artifacts/s3-artifacts.ts';
import {
  ConfigurationError,
  quoted,
  secret,
  settingOf,
  webAddress,
  wholeNumber,
  type Environment,
} from './setting-readers.ts';

/** The variables of artifacts. */
export const artifactVariables = [
  'SVC_ARTIFACTS_MAX_BYTES',
  'SVC_ARTIFACTS_S3_BUCKET',
  'SVC_ARTIFACTS_S3_ENDPOINT',
  'SVC_ARTIFACTS_S3_REGION',
  'SVC_ARTIFACTS_S3_PREFIX',
  'SVC_ARTIFACTS_S3_KEY_ID',
  'SVC_ARTIFACTS_S3_SECRET',
] as const;

/** Where large results are stored. */
export interface ArtifactSettings {
  /**
   * `SVC_ARTIFACTS_MAX_BYTES`: the size of the largest artifact. Larger results are cut; with 0, every large result is.
   * Default: 16 MiB.
   */
  readonly maxBytes: number;
  /** `SVC_ARTIFACTS_S3_…`: a bucket. Default: files in the data directory. */
  readonly s3: S3Settings | undefined;
}

/** A result and its copy as an object take several times its size in memory. */
const MAX_BYTES = 256 * 1024 * 1024;
const DEFAULT_BYTES = 16 * 1024 * 1024;

/** Reads the settings of artifacts. @throws ConfigurationError */
export function artifactConfiguration(env: Environment): ArtifactSettings {
  return { maxBytes: maxBytes(env), s3: s3Settings(env) };
}

function maxBytes(env: Environment): number {
  const variable = 'SVC_ARTIFACTS_MAX_BYTES';
  const bytes = wholeNumber(env, variable, { from: 0, to: MAX_BYTES, otherwise: DEFAULT_BYTES });
  if (bytes > 0 && bytes <= MAX_RESULT_BYTES) {
    const allowed = `0 (no artifacts) or a whole number from ${MAX_RESULT_BYTES + 1} to ${MAX_BYTES}`;
    throw new ConfigurationError(variable, `is "${bytes}"; it must be ${allowed}`);
  }
  return bytes;
}

function s3Settings(env: Environment): S3Settings | undefined {
  const bucket = settingOf(env, 'SVC_ARTIFACTS_S3_BUCKET');
  if (bucket === undefined) {
    const other = artifactVariables.slice(2).find((name) => settingOf(env, name) !== undefined);
    if (other === undefined) return undefined;
    const fault = `is not set, but ${other} is; set it to the bucket's name, or remove the others`;
    throw new ConfigurationError('SVC_ARTIFACTS_S3_BUCKET', fault);
  }
  if (!/^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i.test(bucket)) {
    const allowed = '3 to 63 letters, digits, dots, hyphens and underscores';
    const fault = `is ${quoted(bucket)}; it must be a bucket's name: ${allowed}`;
    throw new ConfigurationError('SVC_ARTIFACTS_S3_BUCKET', fault);
  }
  return {
    bucket,
    prefix: prefix(env),
    region: region(env),
    endpoint: webAddress(env, 'SVC_ARTIFACTS_S3_ENDPOINT'),
    credentials: credentials(env),
  };
}

function prefix(env: Environment): string {
  const variable = 'SVC_ARTIFACTS_S3_PREFIX';
  const text = settingOf(env, variable) ?? 'artifacts/';
  const isPlain = /^[\w.-]+(\/[\w.-]+)*\/?$/.test(text) && text.length <= 200;
  if (!isPlain || /(^|\/)\.\.?(\/|$)/.test(text)) {
    const allowed = 'names of letters, digits, ".", "_" and "-", with slashes between them';
    throw new ConfigurationError(variable, `is ${quoted(text)}; it must be ${allowed}`);
  }
  return text.endsWith('/') ? text : `${text}/`;
}

function region(env: Environment): string {
  const variable = 'SVC_ARTIFACTS_S3_REGION';
  const text = settingOf(env, variable) ?? 'us-east-1';
  if (/^[a-z0-9-]{1,64}$/.test(text)) return text;
  throw new ConfigurationError(variable, `is ${quoted(text)}; it must be like eu-central-1`);
}

function credentials(env: Environment): S3Settings['credentials'] {
  const [idVariable, secretVariable] = ['SVC_ARTIFACTS_S3_KEY_ID', 'SVC_ARTIFACTS_S3_SECRET'];
  const keyId = settingOf(env, idVariable);
  const value = secret(env, secretVariable, { fromBytes: 1, toBytes: 4_096 });
  if (keyId === undefined && value === undefined) return undefined;
  if (keyId !== undefined && value !== undefined) return { keyId, secret: value };
  const [missing, set] =
    keyId === undefined ? [idVariable, secretVariable] : [secretVariable, idVariable];
  throw new ConfigurationError(missing, `is not set, but ${set} is; set both or neither`);
}
