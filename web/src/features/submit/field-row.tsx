import { useState } from 'react'

import { valueAt } from '@/lib/tree'

import { inputId } from './errors'
import { type FormField, shown, typed, usualText } from './fields'

interface Props {
  field: FormField
  /** The name in plain words; the name in the specification if not given. */
  label?: string | undefined
  /** The value in the specification; undefined if it is not set. */
  value: unknown
  /** The value that applies, as far as the server has reported it. */
  effective: unknown
  errors: readonly string[]
  onSet: (value: unknown) => void
  /** For values on which others depend. */
  onChoose: (value: string) => void
}

/** An input with its name, unit, description, default and errors. */
export function FieldRow({ field, label, value, effective, errors, onSet, onChoose }: Props) {
  const id = inputId(field.path.join('.'))
  const described = `${id}-what${errors.length > 0 ? ` ${id}-wrong` : ''}`
  const common = {
    id,
    'aria-describedby': described,
    'aria-invalid': errors.length > 0,
    'aria-required': field.required,
  }
  const set = value !== undefined
  return (
    <div className="spec-field" data-set={set}>
      <div className="spec-label">
        <label htmlFor={id} data-plain={label !== undefined}>
          {label ?? field.path.at(-1)}
        </label>
        {label === undefined && field.unit !== undefined && field.unit !== field.path.at(-1) && (
          <span className="muted small">{field.unit}</span>
        )}
        {set && !field.required && field.kind !== 'pick' && (
          <button
            type="button"
            className="copy-button"
            aria-label={`Reset ${field.path.join('.')}`}
            title="Back to the default"
            onClick={() => {
              onSet(undefined)
            }}
          >
            Reset
          </button>
        )}
      </div>
      {field.kind === 'choice' || field.kind === 'pick' ? (
        <Choice field={field} value={value} effective={effective} common={common} onChoose={onChoose} />
      ) : field.kind === 'flag' ? (
        <input
          {...common}
          type="checkbox"
          checked={Boolean(value ?? effective)}
          onChange={(event) => {
            onSet(event.target.checked === Boolean(field.usual) ? undefined : event.target.checked)
          }}
        />
      ) : (
        <TextInput field={field} value={value} effective={effective} common={common} onSet={onSet} />
      )}
      <p className="muted small" id={`${id}-what`}>
        {sentence(field.description)}
        {!field.required && <span className="spec-usual"> Default: {usualText(effective ?? field.usual)}.</span>}
      </p>
      {errors.length > 0 && (
        <p className="spec-wrong" id={`${id}-wrong`}>
          {errors.join('; ')}
        </p>
      )}
    </div>
  )
}

interface InputProps {
  field: FormField
  value: unknown
  effective: unknown
  common: { id: string }
}

function Choice({ field, value, effective, common, onChoose }: InputProps & { onChoose: (value: string) => void }) {
  const chosen = shown(value)
  const options = chosen === '' || field.options.includes(chosen) ? field.options : [...field.options, chosen]
  return (
    <select
      {...common}
      value={field.kind === 'pick' ? chosen || shown(field.usual) : chosen}
      onChange={(event) => {
        onChoose(event.target.value)
      }}
    >
      {field.kind === 'choice' && (
        <option value="">{field.required ? 'Choose…' : `${usualText(effective ?? field.usual)} (default)`}</option>
      )}
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  )
}

function TextInput({ field, value, effective, common, onSet }: InputProps & { onSet: (value: unknown) => void }) {
  // The text stays as typed: 0.10 on the way to 0.105 must not become 0.1.
  const [text, setText] = useState(shown(value))
  const same = JSON.stringify(typed(text, field)) === JSON.stringify(value)
  const words = `${common.id}-words`
  return (
    <>
      <input
        {...common}
        type="text"
        inputMode={field.kind === 'number' ? 'decimal' : 'text'}
        autoComplete="off"
        spellCheck={false}
        list={field.options.length > 0 ? words : undefined}
        value={same ? text : shown(value)}
        placeholder={field.required ? 'required' : usualText(effective ?? field.usual)}
        onChange={(event) => {
          setText(event.target.value)
          onSet(typed(event.target.value, field))
        }}
      />
      {field.options.length > 0 && (
        <datalist id={words}>
          {field.options.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
    </>
  )
}

function sentence(text: string): string {
  return text === '' || /[.!?…]$/.test(text) ? text : `${text}.`
}

/** The default of a field. A default that depends on other values is known only while the field is not set. */
export function effectiveValue(field: FormField, spec: object, filled: object): unknown {
  if (valueAt(spec, field.path) !== undefined) return field.usual
  return valueAt(filled, field.path) ?? field.usual
}
