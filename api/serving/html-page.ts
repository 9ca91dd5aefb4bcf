/** A short page without script and style. */
export interface PlainPage {
  readonly title: string;
  /** Paragraphs of text. */
  readonly text: readonly string[];
  /** A link below the text. */
  readonly link: { readonly to: string; readonly text: string };
  /** Whether the page follows the link at once, as its own navigation. */
  readonly follow?: boolean;
}

/** The HTML of a page. All strings are escaped. */
export function htmlPage({ title, text, link, follow = false }: PlainPage): string {
  const to = escaped(link.to);
  const refresh = follow ? `<meta http-equiv="refresh" content="0; url=${to}">` : '';
  const paragraphs = text.map((each) => `<p>${escaped(each)}</p>`).join('');
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width, initial-scale=1">' +
    `${refresh}<title>${escaped(title)}</title></head><body><main><h1>${escaped(title)}</h1>` +
    `${paragraphs}<p><a href="${to}">${escaped(link.text)}</a></p></main></body></html>`
  );
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
