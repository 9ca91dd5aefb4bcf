import {
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { isArtifactName } from '../../domain/artifacts/artifact.ts';
import {
  ArtifactError,
  type ArtifactStore,
  type OpenArtifact,
  type StoredArtifact,
} from '../../domain/artifacts/artifact-store.ts';
import { isUuid } from '../../domain/ids.ts';

/** Where the objects are, and how to reach them. */
export interface S3Settings {
  readonly bucket: string;
  /** The prefix of all keys; empty or ends with a slash. */
  readonly prefix: string;
  readonly region: string;
  /** The address of a server other than Amazon's; undefined: Amazon's in the region. */
  readonly endpoint: string | undefined;
  /** undefined: the credentials of the environment, the machine or its role. */
  readonly credentials: { readonly keyId: string; readonly secret: string } | undefined;
}

/** The time limit of a request in milliseconds, and how many requests are made before failing. */
export interface S3Limits {
  readonly connectTimeout: number;
  readonly requestTimeout: number;
  readonly attempts: number;
}

const defaultLimits: S3Limits = { connectTimeout: 5_000, requestTimeout: 30_000, attempts: 3 };

const SUFFIX = '.json';

/** Artifacts as objects of an S3 bucket, for all processes that use it. */
export class S3Artifacts implements ArtifactStore {
  readonly #settings: S3Settings;
  readonly #client: S3Client;

  /** Opens the store without connecting. */
  constructor(settings: S3Settings, limits: Partial<S3Limits> = {}) {
    this.#settings = settings;
    const { region, endpoint, credentials } = settings;
    const { connectTimeout, requestTimeout, attempts } = { ...defaultLimits, ...limits };
    this.#client = new S3Client({
      region,
      // Other servers rarely have a host name for each bucket.
      ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
      ...(credentials === undefined
        ? {}
        : {
            credentials: { accessKeyId: credentials.keyId, secretAccessKey: credentials.secret },
          }),
      maxAttempts: attempts,
      // Other servers do not know Amazon's newer checksums. The signature already covers the content's SHA-256.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: connectTimeout,
        requestTimeout,
        throwOnRequestTimeout: true,
        // Applies also while a slow client reads.
        socketTimeout: 4 * requestTimeout,
      },
    });
  }

  async put(runId: string, artifact: string, content: Uint8Array): Promise<void> {
    const { bucket: Bucket } = this.#settings;
    const Key = this.#keyOf(runId, artifact);
    const command = new PutObjectCommand({
      Bucket,
      Key,
      Body: content,
      ContentLength: content.byteLength,
      ContentType: 'application/json',
    });
    await this.#attempt('write', () => this.#client.send(command));
  }

  async open(runId: string, artifact: string): Promise<OpenArtifact | null> {
    const { bucket: Bucket } = this.#settings;
    const command = new GetObjectCommand({ Bucket, Key: this.#keyOf(runId, artifact) });
    const found = await this.#ifPresent('read', () => this.#client.send(command));
    if (found?.Body === undefined) return null;
    const stream = found.Body as unknown as NodeJS.ReadableStream & { destroy(): void };
    return {
      sizeBytes: found.ContentLength ?? 0,
      chunks: this.#chunksOf(stream),
      close: () => stream.destroy(),
    };
  }

  async copy(artifact: string, from: string, to: string): Promise<boolean> {
    const { bucket: Bucket } = this.#settings;
    const command = new CopyObjectCommand({
      Bucket,
      Key: this.#keyOf(to, artifact),
      CopySource: `${Bucket}/${encodeURIComponent(this.#keyOf(from, artifact))}`,
    });
    return (await this.#ifPresent('copy', () => this.#client.send(command))) !== null;
  }

  async remove(runId: string, artifact: string): Promise<void> {
    const { bucket: Bucket } = this.#settings;
    const command = new DeleteObjectCommand({ Bucket, Key: this.#keyOf(runId, artifact) });
    await this.#ifPresent('remove', () => this.#client.send(command));
  }

  async *list(): AsyncGenerator<readonly StoredArtifact[]> {
    const { bucket: Bucket, prefix: Prefix } = this.#settings;
    let token: string | undefined;
    do {
      const command = new ListObjectsV2Command({ Bucket, Prefix, ContinuationToken: token });
      const page = await this.#attempt('list', () => this.#client.send(command));
      yield (page.Contents ?? []).flatMap(({ Key = '', LastModified }) => {
        const [runId = '', name = '', ...more] = Key.slice(Prefix.length).split('/');
        const artifact = name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : '';
        const isOurs = isUuid(runId) && isArtifactName(artifact) && more.length === 0;
        // An object without a time counts as new.
        const modifiedAt = LastModified?.getTime() ?? Date.now();
        return isOurs ? [{ runId, artifact, modifiedAt }] : [];
      });
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  async check(): Promise<void> {
    const { bucket: Bucket, prefix: Prefix } = this.#settings;
    const command = new ListObjectsV2Command({ Bucket, Prefix, MaxKeys: 1 });
    await this.#attempt('list', () => this.#client.send(command));
  }

  async close(): Promise<void> {
    this.#client.destroy();
  }

  async *#chunksOf(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of stream) yield chunk as Uint8Array;
    } catch (error) {
      throw this.#errorOf('read', error);
    }
  }

  /** @throws RangeError for a name that could lead to another key */
  #keyOf(runId: string, artifact: string): string {
    if (!isUuid(runId) || !isArtifactName(artifact)) {
      throw new RangeError('an artifact is named by the id of its run and a SHA-256');
    }
    return `${this.#settings.prefix}${runId}/${artifact}${SUFFIX}`;
  }

  async #attempt<T>(verb: string, send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (error) {
      throw this.#errorOf(verb, error);
    }
  }

  /** null if there is no such object. */
  async #ifPresent<T>(verb: string, send: () => Promise<T>): Promise<T | null> {
    return this.#attempt(verb, () =>
      send().catch((error: unknown) => {
        if (nameOf(error) === 'NoSuchKey') return null;
        throw error;
      }),
    );
  }

  /** The message contains no address, as clients receive it. */
  #errorOf(verb: string, error: unknown): ArtifactError {
    const name = nameOf(error);
    const remedy = remedies[name] ?? remedyOf(statusOf(error));
    const problem = `could not ${verb} artifacts in the bucket ${this.#settings.bucket} (${name})`;
    return new ArtifactError('UNAVAILABLE', problem, remedy, error);
  }
}

const CHECK_KEY = 'check SVC_ARTIFACTS_S3_KEY_ID and SVC_ARTIFACTS_S3_SECRET';
const CHECK_ADDRESS = 'check SVC_ARTIFACTS_S3_ENDPOINT, and that the server runs';

const remedies: Readonly<Record<string, string>> = {
  NoSuchBucket: 'create it, or correct SVC_ARTIFACTS_S3_BUCKET',
  InvalidAccessKeyId: CHECK_KEY,
  SignatureDoesNotMatch: CHECK_KEY,
  CredentialsProviderError: `${CHECK_KEY}, or give the machine a role`,
  RequestTimeTooSkewed: 'set the clocks by NTP on every machine',
  PermanentRedirect: 'correct SVC_ARTIFACTS_S3_REGION',
  AuthorizationHeaderMalformed: 'correct SVC_ARTIFACTS_S3_REGION',
  ECONNREFUSED: CHECK_ADDRESS,
  ENOTFOUND: CHECK_ADDRESS,
  TimeoutError: CHECK_ADDRESS,
};

function remedyOf(status: number | undefined): string {
  if (status === 403) return 'allow the key to list, get, put and delete objects there';
  return status === undefined ? CHECK_ADDRESS : 'the service retries; see the log of the server';
}

interface Failure {
  readonly name?: string;
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

const statusOf = (error: unknown): number | undefined =>
  (error as Failure).$metadata?.httpStatusCode;

/** The error's name given by the server, or otherwise by the system. */
function nameOf(error: unknown): string {
  const { code, name = 'unknown' } = error as Failure;
  const status = statusOf(error);
  const isNamed = !['Error', 'AggregateError', 'UnknownError', 'Unknown'].includes(name);
  if (isNamed) return name;
  return code ?? (status === undefined ? name : `status ${status}`);
}
