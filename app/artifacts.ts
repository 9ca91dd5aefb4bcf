import { requireArtifactRoom, type QuotaParts } from '../api/access/count-quotas.ts';
import type { ArtifactStore } from '../domain/artifacts/artifact-store.ts';
import type { ArtifactKeeping } from '../domain/artifacts/keep-result.ts';
import { measuredArtifacts } from '../observability/measured-artifacts.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { Configuration } from './configuration/configuration.ts';

type ArtifactPlace = Pick<Configuration, 'artifacts' | 'dataDirectory'>;

/**
 * Opens the store of artifacts. Connects to nothing, and creates nothing.
 * @param quotaParts what is needed to check the quotas of namespaces; undefined: no limits
 */
export async function openArtifacts(
  place: ArtifactPlace,
  telemetry: Telemetry,
  quotaParts?: QuotaParts,
): Promise<ArtifactKeeping> {
  const store = measuredArtifacts(await openStore(place), telemetry);
  const { maxBytes } = place.artifacts;
  if (quotaParts === undefined) return { store, maxBytes };
  const requireRoom = (namespace: string, bytes: number): Promise<void> =>
    requireArtifactRoom(quotaParts, namespace, bytes);
  return { store, maxBytes, requireRoom };
}

/** Imports an adapter on demand: the client of S3 is large. */
async function openStore({
  artifacts: { s3 },
  dataDirectory,
}: ArtifactPlace): Promise<ArtifactStore> {
  if (s3 !== undefined) {
    // The installed client supports this version of Node. It warns about future releases of the client.
    process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
    const { S3Artifacts } = await import('../stores/artifacts/s3-artifacts.ts');
    return new S3Artifacts(s3);
  }
  const { FileArtifacts } = await import('../stores/artifacts/file-artifacts.ts');
  return new FileArtifacts(dataDirectory);
}
