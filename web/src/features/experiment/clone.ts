import { ApiProblem } from '@/api/problem'

/** What the form says as a JSON Merge Patch of the specification, or what is wrong with it. */
export function clonePatch(form: FormData): Record<string, unknown> | ApiProblem {
  const changes = parseObject(text(form, 'changes'))
  if (changes === undefined) {
    const detail = 'Other changes must be a JSON object such as {"seed": 1}.'
    return new ApiProblem({ code: 'spec.invalid', title: 'The changes cannot be read', detail }, 422)
  }
  return { ...changes, name: text(form, 'name'), rounds: Number(text(form, 'rounds')) }
}

function text(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value.trim() : ''
}

function parseObject(source: string): Record<string, unknown> | undefined {
  if (source === '') return {}
  try {
    const value: unknown = JSON.parse(source)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}
