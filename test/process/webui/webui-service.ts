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

/** A service that the tests of a file share. */
export interface SharedService {
  readonly process: ServiceProcess;
  /** The data directory. */
  readonly directory: string;
  /** The first admin's. */
  readonly credentials: Credentials;
  /** Logged in as the first admin. */
  readonly client: ApiClient;
}

/** Starts a service before the tests, and stops it after them. @returns a getter for it */
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
