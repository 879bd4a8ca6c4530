-- Plans, questions and answers become JSON of the model's types; they were JSON of the chat-events protocol.
UPDATE plans SET plan = json_object(
    'summary', plan -> 'summary',
    'state', CASE state
        WHEN 'planned' THEN 'Planned'
        WHEN 'approved' THEN 'Approved'
        WHEN 'rejected' THEN 'Rejected'
        WHEN 'executing' THEN 'Executing'
        ELSE 'Completed'
    END,
    'steps', json((
        SELECT json_group_array(json_object(
            'title', step.value -> 'title',
            'description', step.value -> 'description',
            'state', CASE step.value ->> 'status'
                WHEN 'pending' THEN 'Pending'
                WHEN 'in_progress' THEN 'InProgress'
                WHEN 'done' THEN 'Done'
                ELSE 'Skipped'
            END
        ) ORDER BY step.key)
        FROM json_each(plans.plan, '$.items') AS step
    )),
    'text', plan -> 'plan_text'
);
-- The plan itself contains its state.
ALTER TABLE plans DROP COLUMN state;

UPDATE approvals SET input = (
    SELECT json_group_array(json_object(
        'text', question.value -> 'question',
        'header', question.value -> 'header',
        'options', question.value -> 'options',
        'several', question.value -> 'multi_select'
    ) ORDER BY question.key)
    FROM json_each(approvals.input) AS question
)
WHERE matter = 1;

UPDATE approvals SET answers = (
    SELECT json_group_array(json_object(
        'question', answer.value -> 'question_index',
        'selected', answer.value -> 'selected',
        'text', answer.value -> 'custom_text'
    ) ORDER BY answer.key)
    FROM json_each(approvals.answers) AS answer
)
WHERE answers IS NOT NULL;
