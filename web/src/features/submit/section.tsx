import { valueAt } from '@/lib/tree'

import { inputId } from './errors'
import { effectiveValue, FieldRow } from './field-row'
import type { FormField, FormGroup } from './fields'
import { allFields, isChoosing } from './form'
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
  const fields = allFields(group)
  const set = fields.filter(({ path }) => valueAt(editing.draft.spec, path) !== undefined).length
  const wrong = errors.has(name) || fields.some(({ path }) => errors.has(path.join('.')))
  return (
    <details
      className="spec-section"
      open={open || wrong}
      onToggle={(event) => {
        if (!wrong && event.currentTarget.open !== open) onOpen(event.currentTarget.open)
      }}
    >
      <summary id={inputId(name)} tabIndex={0}>
        <h2>{name}</h2>
        <span className="muted small">{group.description}</span>
        <span className="spec-count small">{set > 0 && `${set} set`}</span>
      </summary>
      <Fields group={group} editing={editing} filled={filled} errors={errors} />
    </details>
  )
}

type FieldsProps = Pick<Props, 'group' | 'editing' | 'filled' | 'errors'>

export function Fields({ group, editing, filled, errors }: FieldsProps) {
  const { spec } = editing.draft
  const own = errors.get(group.path.join('.')) ?? []
  return (
    <>
      {own.length > 0 && <p className="spec-wrong">{own.join('; ')}</p>}
      <div className="spec-fields">
        {group.fields.map((field) => (
          <FieldRow
            key={field.path.join('.')}
            field={field}
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

/** True if other options depend on the field: the algorithm, the local optimizer. */
function leads({ path }: FormField): boolean {
  const [section = ''] = path
  return isChoosing(section) && ['name', 'optimizer'].includes(path.at(-1) ?? '')
}
