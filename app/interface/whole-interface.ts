import { endpoints } from '../../api/app.ts';
import type { DescribedTool } from '../../api/dependencies.ts';
import { endpointsOf, hostEndpoints } from '../../api/endpoints/extension-endpoints.ts';
import { describeInterface } from '../../api/openapi/openapi.ts';
import { unlistedEndpoints } from '../../api/openapi/unlisted-endpoints.ts';
import type { JsonObject } from '../../domain/json.ts';
import { endpoints as eventsDemo } from '../../extensions/events_demo/events-demo.ts';
import { endpoints as mcpHttp } from '../../extensions/mcp_http/mcp-http.ts';
import { endpoints as webui } from '../../extensions/webui/webui.ts';
import { createBuiltInTools } from '../../scheduler/tools/built-in.ts';

/**
 * The description of the interface as a service with the built-in extensions serves it at `/openapi.json`, without
 * starting one.
 */
export async function wholeInterface(version: string): Promise<JsonObject> {
  const core = [...endpoints, ...unlistedEndpoints];
  const builtIn = [
    { id: 'webui', endpoints: webui },
    { id: 'events_demo', endpoints: eventsDemo },
    { id: 'mcp_http', endpoints: mcpHttp },
  ].flatMap((extension) => endpointsOf({ ...extension, isLimited: false }, core));
  const tools = await builtInTools();
  return describeInterface([...core, ...hostEndpoints, ...builtIn], { version, tools });
}

/** Nothing is called: only the descriptions of the tools are used. */
async function builtInTools(): Promise<readonly DescribedTool[]> {
  const never = () => Promise.reject(new Error('tools are only described here'));
  const actions = { publishEvent: never, runTask: never };
  const { registry, close } = createBuiltInTools({ actions, allowPrivate: false });
  await close();
  return registry.builtIn;
}
