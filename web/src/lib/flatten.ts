/** `{a: {b: 1}}` → `[['a.b', '1']]`: the leaves by their dotted paths, as people read them. */
export function flatten(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, leaf(value)]]
  return Object.entries(value).flatMap(([key, inner]) => flatten(inner, path === '' ? key : `${path}.${key}`))
}

function leaf(value: unknown): string {
  if (value === null || value === undefined) return 'unset'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
