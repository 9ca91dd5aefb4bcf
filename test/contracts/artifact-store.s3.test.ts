import { S3Artifacts, type S3Settings } from '../../stores/artifacts/s3-artifacts.ts';
import type { ArtifactStore } from '../../domain/artifacts/artifact-store.ts';
import { realServerAt } from '../support/left-out.ts';
import { S3Server } from '../support/s3-server.ts';
import { describeArtifactStoreContract, type ArtifactStoreHarness } from './artifact-store.ts';

function harnessOf(settings: S3Settings, close: () => Promise<void>): ArtifactStoreHarness {
  const opened: ArtifactStore[] = [];
  const another = async (): Promise<ArtifactStore> => {
    const store = new S3Artifacts(settings);
    opened.push(store);
    return store;
  };
  return {
    store: new S3Artifacts(settings),
    another,
    close: async () => {
      for (const store of opened) await store.close();
      await close();
    },
  };
}

describeArtifactStoreContract('the store of artifacts in S3', async () => {
  const server = await S3Server.start();
  const { bucket, region, credentials, url: endpoint } = server;
  const settings = { bucket, region, credentials, endpoint, prefix: 'some/where/' };
  return harnessOf(settings, () => server.close());
});

/** `http://<key id>:<secret>@<host>/<bucket>?region=<region>` */
const realServer = realServerAt('SVC_TEST_S3_URL');
if (realServer !== undefined) {
  const url = new URL(realServer);
  const settings: S3Settings = {
    bucket: url.pathname.slice(1),
    region: url.searchParams.get('region') ?? 'us-east-1',
    endpoint: url.origin,
    prefix: `tests-${String(Date.now())}/`,
    credentials: {
      keyId: decodeURIComponent(url.username),
      secret: decodeURIComponent(url.password),
    },
  };
  describeArtifactStoreContract('the store of artifacts in a real S3', async () =>
    harnessOf(settings, async () => {}),
  );
}
