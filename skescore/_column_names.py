"""Meanings of column names: identifiers, codes and times."""

from __future__ import annotations

import re

__all__ = ["is_calendar_name", "is_code_name", "is_identifier_name", "is_time_name"]

#: Names of identifiers of people, things and cases that may have several rows in a table.
_IDENTIFIER = re.compile(
    r"(?i:(^|[\W_])(ids?|uuid|guid|ssn|pid|mrn)$|identifier$"
    r"|(kunden|fall|pat)\.?[\W_]?(nummer|nr)\.?$)|[a-z](ID|Id|UUID)$"
    r"|(?i:^(patient|subj|subject|person|customer|client|user|member|student|participant|respondent"
    r"|employee|household|animal|individual|case|account|visitor|device|kunde|proband)"
    r"[\W_]?(nr|no|num|number|key|code|name)?$)"
)
#: Names of integer codes of places, industries, occupations and products.
_CODE = re.compile(
    r"(?i:(^|[\W_])(code|codes|zip|zipcode|zip_?code|postcode|postal_?code|plz|fips|icd\d*|sic|naics"
    r"|state|country|county|region|district|province|prefecture|canton|kanton|bundesland"
    r"|municipality|occupation|industry|sku|iata)(_?(code|id|no|nr))?$)|[a-z](Code|Zip)$"
)
_TIME = re.compile(
    r"(?i:(^|[\W_])(date|datetime|timestamp|time|datum|zeit|year|jahr|day_?number|period)$"
    r"|: days since \d{4}-\d\d-\d\d$)|[a-z](Date|Time)$"
)

_CALENDAR = re.compile(r"(?i:(^|[\W_])(year|quarter|month|week|weekday|day|hour|minute)$)")


def is_calendar_name(name: str) -> bool:
    """Return whether a column is named like a part of dates, whose order may mean little.

    Examples
    --------
    >>> from skescore._column_names import is_calendar_name
    >>> is_calendar_name("month"), is_calendar_name("paid on: weekday"), is_calendar_name("today")
    (True, True, False)
    """
    return _CALENDAR.search(name) is not None


def is_identifier_name(name: str) -> bool:
    """Return whether a column is named like an identifier that may occur in several rows.

    Examples
    --------
    >>> from skescore._column_names import is_identifier_name
    >>> [name for name in ("patient", "CustomerID", "Pat.-Nr.", "paid") if is_identifier_name(name)]
    ['patient', 'CustomerID', 'Pat.-Nr.']
    """
    return _IDENTIFIER.search(name) is not None


def is_code_name(name: str) -> bool:
    """Return whether a column is named like a code of a place, an industry or a product.

    Examples
    --------
    >>> from skescore._column_names import is_code_name
    >>> [name for name in ("zip", "state_code", "statement", "barcode") if is_code_name(name)]
    ['zip', 'state_code']
    """
    return _CODE.search(name) is not None


def is_time_name(name: str) -> bool:
    """Return whether a column is named like a time or a date.

    Examples
    --------
    >>> from skescore._column_names import is_time_name
    >>> [name for name in ("date", "on: days since 2024-01-31", "runtime") if is_time_name(name)]
    ['date', 'on: days since 2024-01-31']
    """
    return _TIME.search(name) is not None
