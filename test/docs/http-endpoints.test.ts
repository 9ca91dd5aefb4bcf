import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { httpReference } from '../../app/interface/http-reference.ts';
import { wholeInterface } from '../../app/interface/whole-interface.ts';
import { version } from '../../app/version.ts';
import { projectRoot } from '../support/project-root.ts';
import { read } from './documents.ts';

describe('the generated reference of all endpoints', () => {
  const folder = 'docs/reference/http-endpoints';

  it('matches the schemas; if not, run `npm run docs:reference`', async () => {
    const pages = httpReference(await wholeInterface(version));
    expect(readdirSync(join(projectRoot, folder))).to.have.members([...pages.keys()]);
    for (const [file, text] of pages) expect(read(`${folder}/${file}`), file).to.equal(text);
  });

  it('shows a field with its type, bounds, default and meaning', () => {
    const pages = httpReference({
      tags: [{ name: 'tasks', description: 'Pipelines.' }],
      paths: {
        '/tasks': {
          post: {
            operationId: 'createTask',
            summary: 'Creates a task',
            tags: ['tasks'],
            description: 'Any valid token is enough.',
            requestBody: {
              required: true,
              content: {
                'application/json': {
                  schema: {
                    type: 'object',
                    required: ['title'],
                    properties: {
                      title: { type: 'string', maxLength: 200, description: 'a title' },
                      priority: { type: 'integer', minimum: 0, maximum: 9, default: 5 },
                      task: { anyOf: [{ $ref: '#/components/schemas/Task' }, { type: 'null' }] },
                    },
                  },
                  example: { title: 'Morning report' },
                },
              },
            },
            responses: { 201: {}, 400: { $ref: '#/components/responses/bad_request' } },
          },
        },
      },
    });
    const text = pages.get('tasks.md') ?? '';
    expect(text.split('\n')).to.include.members([
      '## `POST /tasks`',
      'Creates a task. Any valid token is enough. Operation `createTask`.',
      'Body (required):',
      '- `title` (string, at most 200 characters; required): a title',
      '- `priority` (integer, 0 to 9; default `5`)',
      '- `task` ([Task](schemas.md#task) or null)',
      '- `201`: no body',
      '- Errors: 400 `bad_request`',
      '  "title": "Morning report"',
    ]);
  });
});
