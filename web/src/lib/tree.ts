import { isTable } from './toml'

export type Tree = Record<string, unknown>
export type Path = readonly string[]

/** The value at a path, undefined if it is missing. */
export function valueAt(tree: unknown, path: Path): unknown {
  return path.reduce<unknown>((found, name) => (isTable(found) ? found[name] : undefined), tree)
}

/** The tree with another value at the path; undefined takes it away, and tables that are empty then go too. */
export function withValue(tree: Tree, path: Path, value: unknown): Tree {
  const [name, ...rest] = path
  if (name === undefined) return tree
  const below = tree[name]
  const next = rest.length === 0 ? value : withValue(isTable(below) ? below : {}, rest, value)
  const gone = next === undefined || (rest.length > 0 && isTable(next) && Object.keys(next).length === 0)
  return gone ? without(tree, name) : { ...tree, [name]: next }
}

/** Without empty tables. */
export function pruned(tree: Tree): Tree {
  return Object.fromEntries(
    Object.entries(tree)
      .map(([name, value]) => [name, isTable(value) ? pruned(value) : value] as const)
      .filter(([, value]) => !isTable(value) || Object.keys(value).length > 0),
  )
}

function without(tree: Tree, name: string): Tree {
  return Object.fromEntries(Object.entries(tree).filter(([other]) => other !== name))
}

/** `{a: {b: 1}}` → `[['a.b', '1']]`: the leaves by their dotted paths, as people read them. */
export function flatten(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, leaf(value)]]
  return Object.entries(value).flatMap(([key, inner]) => flatten(inner, path === '' ? key : `${path}.${key}`))
}

function leaf(value: unknown): string {
  if (value === null || value === undefined) return 'unset'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
