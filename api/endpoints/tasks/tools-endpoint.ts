import { CallStepSchema } from '../../../domain/pipeline/pipeline.ts';
import { EVERY_NAMESPACE } from '../../../projections/reach.ts';
import { ToolList, ToolQuery } from '../../schemas/tool-schemas.ts';
import { endpoint, namespaceOfCaller, type Endpoint } from '../../endpoint.ts';

const list = endpoint('GET /tools', {
  operationId: 'listPipelineTools',
  summary: 'Lists the tools that the steps of a pipeline can use, by name',
  description: 'These are tools of the service, of its extensions, and of workers.',
  scopes: ['tasks:read'],
  query: ToolQuery,
  hasLargeResponse: true,
  responses: { 200: ToolList },
  handle(call) {
    const namespace = call.reach === EVERY_NAMESPACE ? namespaceOfCaller(call) : call.reach;
    const known = call.dependencies.tools.of(namespace);
    const tools = known.names().map((name) => {
      return { name, schema: known.schemaOf(name) ?? {}, own: known.isOwn(name) };
    });
    return { body: { tools, step: CallStepSchema } };
  },
});

export const toolsEndpoints: readonly Endpoint[] = [list];
