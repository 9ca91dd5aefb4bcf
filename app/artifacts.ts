import type { ArtifactStore } from '../domain/artifacts/artifact-store.ts';
import type { ArtifactKeeping } from '../domain/artifacts/keep-result.ts';
import { measuredArtifacts } from '../observability/measured-artifacts.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { Configuration } from './configuration/configuration.ts';

type ArtifactPlace = Pick<Configuration, 'artifacts' | 'dataDirectory'>;

/** Opens the store of artifacts. Connects to nothing, and creates nothing. */
export async function openArtifacts(
  place: ArtifactPlace,
  telemetry: Telemetry,
): Promise<ArtifactKeeping> {
  const store = measuredArtifacts(await openStore(place), telemetry);
  return { store, maxBytes: place.artifacts.maxBytes };
}

/** Imports an adapter on demand: the client of S3 is large. */
async function openStore({
  artifacts: { s3 },
  dataDirectory,
}: ArtifactPlace): Promise<ArtifactStore> {
  if (s3 !== undefined) {
    // The installed release of the client supports this Node; its warning is about releases to come.
    process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
    const { S3Artifacts } = await import('../stores/artifacts/s3-artifacts.ts');
    return new S3Artifacts(s3);
  }
  const { FileArtifacts } = await import('../stores/artifacts/file-artifacts.ts');
  return new FileArtifacts(dataDirectory);
}
