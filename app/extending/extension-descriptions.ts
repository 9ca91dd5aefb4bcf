import { endpoints } from '../../api/app.ts';
import { endpointsOf, type DescribingExtension } from '../../api/endpoints/extension-endpoints.ts';
import { describeInterface } from '../../api/openapi/openapi.ts';
import { unlistedEndpoints } from '../../api/openapi/unlisted-endpoints.ts';

/**
 * Checks that `/openapi.json` can describe an extension's endpoints beside the service's own.
 * @throws Error otherwise, for example for an unknown schema
 */
export function checkDescription(extension: DescribingExtension): void {
  const core = [...endpoints, ...unlistedEndpoints];
  describeInterface([...core, ...endpointsOf(extension, core)], { version: '', tools: [] });
}
