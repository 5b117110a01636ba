import { isTable } from '@/lib/toml'

import type { FormField } from './fields'

/** The text of a value in an input. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.every((item) => typeof item === 'string') ? value.join(', ') : json(value)
  return typeof value === 'string' ? value : json(value)
}

/** The value of a typed text. Text that cannot be parsed is sent unchanged, and the server reports the error. */
export function typed(text: string, field: Pick<FormField, 'kind' | 'options'>): unknown {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  switch (field.kind) {
    case 'number':
      return number(trimmed)
    case 'list':
      return trimmed.split(',').map((item) => item.trim())
    case 'json':
      return parsed(trimmed)
    case 'text':
      // Words, or a number in their place.
      return field.options.length > 0 && !field.options.includes(trimmed) ? number(trimmed) : text
    default:
      return trimmed
  }
}

/** A default value in words. */
export function usualText(value: unknown): string {
  if (value === null || value === undefined) return 'unset'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (isTable(value) && Object.keys(value).length === 0) return 'none'
  return shown(value)
}

/** A number that JavaScript cannot hold stays text, which the server reads exactly. */
function number(text: string): unknown {
  const value = Number(text)
  const whole = /^[+-]?\d+$/.test(text)
  return !Number.isFinite(value) || (whole && !Number.isSafeInteger(value)) ? text : value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function json(value: unknown): string {
  return JSON.stringify(value)
}
