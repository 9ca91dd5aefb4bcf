import { endpoints } from '../../api/app.ts';
import { endpointsOf, type DescribingExtension } from '../../api/endpoints/extension-endpoints.ts';
import { describeInterface } from '../../api/openapi/openapi.ts';
import { unlistedEndpoints } from '../../api/openapi/unlisted-endpoints.ts';

/**
 * Whether `/openapi.json` can have the endpoints of an extension, beside the service's own.
 * @throws Error for what it can't have, such as a schema that the service has not
 */
export function checkDescription(extension: DescribingExtension): void {
  const core = [...endpoints, ...unlistedEndpoints];
  describeInterface([...core, ...endpointsOf(extension, core)], { version: '', tools: [] });
}
