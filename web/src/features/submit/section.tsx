import type { ReactNode } from 'react'

import { valueAt } from '@/lib/tree'

import { inputId } from './errors'
import { effectiveValue, FieldRow } from './field-row'
import type { FormField, FormGroup } from './fields'
import { allFields, isChoosing, placesOf } from './form'
import type { Editing } from './use-draft'

interface Props {
  group: FormGroup
  editing: Editing
  filled: object
  errors: ReadonlyMap<string, string[]>
  open: boolean
  onOpen: (open: boolean) => void
}

/** A collapsible table of the specification. Errors in it keep it open. */
export function Section({ group, editing, filled, errors, open, onOpen }: Props) {
  const name = group.path.join('.')
  return (
    <Foldable {...{ group, editing, errors, open, onOpen }} title={<h3>{name}</h3>}>
      <Fields group={group} editing={editing} filled={filled} errors={errors} />
    </Foldable>
  )
}

type FoldableProps = Omit<Props, 'filled'> & { title: ReactNode; children: ReactNode }

/** Foldable content with the number of its values that are set. Errors in it keep it open. */
export function Foldable({ group, editing, errors, open, onOpen, title, children }: FoldableProps) {
  const fields = allFields(group)
  const set = fields.filter(({ path }) => valueAt(editing.draft.spec, path) !== undefined).length
  const wrong = errors.has(group.path.join('.')) || [...placesOf(group)].some((place) => errors.has(place))
  return (
    <details
      className="spec-section"
      open={open || wrong}
      onToggle={(event) => {
        if (!wrong && event.currentTarget.open !== open) onOpen(event.currentTarget.open)
      }}
    >
      <summary id={group.path.length > 0 ? inputId(group.path.join('.')) : undefined} tabIndex={0}>
        {title}
        <span className="muted small">{group.description}</span>
        <span className="spec-count small">{set > 0 && `${set} set`}</span>
      </summary>
      {children}
    </details>
  )
}

type FieldsProps = Pick<Props, 'group' | 'editing' | 'filled' | 'errors'>

export function Fields({ group, editing, filled, errors }: FieldsProps) {
  const own = errors.get(group.path.join('.')) ?? []
  return (
    <>
      {own.length > 0 && <p className="spec-wrong">{own.join('; ')}</p>}
      <div className="spec-fields">
        {group.fields.map((field) => (
          <Field key={field.path.join('.')} {...{ field, editing, filled, errors }} />
        ))}
      </div>
      {group.groups.map((inner) => (
        <fieldset key={inner.path.join('.')} className="spec-group">
          <legend id={inputId(inner.path.join('.'))} tabIndex={-1}>
            {inner.path.join('.')} <span className="muted small">{inner.description}</span>
          </legend>
          <Fields group={inner} editing={editing} filled={filled} errors={errors} />
        </fieldset>
      ))}
    </>
  )
}

type FieldProps = Omit<FieldsProps, 'group'> & { field: FormField; label?: string }

export function Field({ field, label, editing, filled, errors }: FieldProps) {
  const { spec } = editing.draft
  return (
    <FieldRow
      field={field}
      label={label}
      value={valueAt(spec, field.path)}
      effective={effectiveValue(field, spec, filled)}
      errors={errors.get(field.path.join('.')) ?? []}
      onSet={(value) => {
        if (leads(field)) editing.choose(field, '')
        else editing.set(field, value)
      }}
      onChoose={(value) => {
        if (leads(field)) editing.choose(field, value)
        else editing.set(field, value === '' ? undefined : value)
      }}
    />
  )
}

/** True if other options depend on the field: the algorithm, the local optimizer. */
function leads({ path }: FormField): boolean {
  const [section = ''] = path
  return isChoosing(section) && ['name', 'optimizer'].includes(path.at(-1) ?? '')
}
