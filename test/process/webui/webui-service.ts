import type { ApiClient } from '../../support/api-client.ts';
import {
  ServiceProcess,
  credentialsIn,
  signIn,
  type Credentials,
} from '../../support/service-process.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';

/** A service of its own that a file's tests share. */
export interface SharedService {
  readonly process: ServiceProcess;
  /** Of its data. */
  readonly directory: string;
  /** Of the first administrator. */
  readonly credentials: Credentials;
  /** Signed in as that. */
  readonly client: ApiClient;
}

/** Starts a service before the tests, and ends it after them. @returns what gives it, once it runs */
export function useService(settings: Readonly<Record<string, string>> = {}): () => SharedService {
  let directory: TemporaryDirectory | undefined;
  let service: ServiceProcess | undefined;
  let shared: SharedService | undefined;

  before(async () => {
    directory = await makeTemporaryDirectory();
    service = await ServiceProcess.start({ SVC_DATA_DIR: directory.path, ...settings });
    const credentials = credentialsIn(directory.path);
    const client = service.client(await signIn(service.client(), credentials));
    shared = { process: service, directory: directory.path, credentials, client };
  });

  after(async () => {
    await service?.terminate();
    await directory?.remove();
  });

  return () => {
    if (shared === undefined) throw new Error('the service has not started');
    return shared;
  };
}
