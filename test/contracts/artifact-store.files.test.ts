import { FileArtifacts } from '../../stores/artifacts/file-artifacts.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';
import { describeArtifactStoreContract } from './artifact-store.ts';

describeArtifactStoreContract('the store of artifacts in files', async () => {
  const directory = await makeTemporaryDirectory();
  return {
    store: new FileArtifacts(directory.path),
    another: async () => new FileArtifacts(directory.path),
    close: () => directory.remove(),
  };
});
